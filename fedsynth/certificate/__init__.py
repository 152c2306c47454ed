"""The certificate for people: one page of HTML, the same in PDF, beside the JSON that programs verify."""
