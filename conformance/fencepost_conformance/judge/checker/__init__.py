"""The checker: could the model have produced this recorded trace?"""
