--------------------------- MODULE MCMixedMutants ---------------------------
(***************************************************************************)
(* The mixed group with one guard taken away at a time: each operator      *)
(* stands in for one of the specification by an override in a              *)
(* configuration that must fail. Faults that Kafka itself has need no      *)
(* stand-in; they are switches.                                            *)
(***************************************************************************)
EXTENDS MCMixedGroup

\* For Granted: what a classic member is told is what is meant for it, held or not.
ToldItsTarget(g, m) == Consumer!Stored(g.consumer, m)
=============================================================================
