"""A whole federation on one machine, through the code that is deployed."""
