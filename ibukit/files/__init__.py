"""Files that the package writes: replaced as a whole, with a checksum, and read without executing anything."""
