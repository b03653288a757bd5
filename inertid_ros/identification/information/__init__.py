"""Square-root information of data about the parameters, and the checks of data, delay and residuals."""
