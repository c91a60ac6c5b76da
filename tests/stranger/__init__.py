"""What somebody else might write, who knows ibukit by its public names;
the page on extending shows all of it.
"""
