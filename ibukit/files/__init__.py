"""Files of the package: replaced as a whole, with a checksum, and read without executing code."""
