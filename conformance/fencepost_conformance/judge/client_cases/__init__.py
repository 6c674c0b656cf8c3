"""Named cases for clients: Fencepost plays the broker, makes trouble, and judges what the client does.

``case`` registers cases, ``stage`` starts the broker and the client, ``process`` runs the client's command, ``events``
judges what it says on standard output, and ``play`` plays cases. The modules below ``catalogue`` have the cases.
"""
