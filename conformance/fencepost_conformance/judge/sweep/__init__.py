"""The sweep: send every API of groups, offsets, transactions and topics, in every version and form, through the
recorder."""
