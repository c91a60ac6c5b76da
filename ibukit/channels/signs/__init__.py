"""Reports that agree with the signs of a Hadamard matrix, and its fast transform."""
