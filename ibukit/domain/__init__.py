"""The vocabulary of the package: alphabets, labels, distributions and linear functionals of them."""
