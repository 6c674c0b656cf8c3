-------------------------- MODULE MCClassicFairness -------------------------
(***************************************************************************)
(* SystemCanMove, which FairSpec uses, equals what TLA+ calls ENABLED. TLC *)
(* computes ENABLED by trial, so this is checked on a small graph.         *)
(***************************************************************************)
EXTENDS MCClassicGroup

SystemCanMoveEqualsEnabled == SystemCanMove <=> ENABLED <<System>>_vars

\* For SystemCanMove: fairness without any demand.
SystemNeverCanMove == FALSE
=============================================================================
