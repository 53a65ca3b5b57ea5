"""pytest plug-in: fixtures that give a test a coordinator of its own. Imports nothing heavy."""
