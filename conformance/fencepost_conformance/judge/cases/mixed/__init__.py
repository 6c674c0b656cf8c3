"""Cases of groups with members of both protocols, and of the change between them."""
