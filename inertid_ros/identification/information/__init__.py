"""Square-root information: what data determines of the parameters, and the checks of data, delay and residuals."""
