"""The boundary: messages to arrays and back, QoS, parameter declarations. Nothing else converts."""
