-------------------------- MODULE MixedProperties ---------------------------
(***************************************************************************)
(* What the closed mixed group promises. Each property has a configuration *)
(* in which it holds and one in which a guard is taken away and it fails   *)
(* (spec/manifest.json). Names are sentences.                              *)
(***************************************************************************)
EXTENDS MixedGroup

Present == DOMAIN group.consumer.members

\* INV-KIP-01
NoPartitionHasTwoHolders ==
  \A m, n \in Present :
    m # n => Consumer!Holding(group.consumer.members[m])
             \cap Consumer!Holding(group.consumer.members[n]) = {}
=============================================================================
