"""What crosses between institutions: bytes on the wire, what an ask must hold, how answers are summed, archives."""
