"""All that a site without a network needs, in one signed file: made where there is one, checked where there is none."""
