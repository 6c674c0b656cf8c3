"""The matrix: brokers and clients that can be installed, against the families of named cases."""
