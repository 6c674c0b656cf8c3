---------------------------- MODULE MCMixedGroup ----------------------------
(***************************************************************************)
(* Bounds of the closed mixed group. Each is a named operator that a       *)
(* configuration assigns to a constant; the comment says what the bound    *)
(* cuts off. Bounds are constants of a run: no VIEW, no SYMMETRY, no state *)
(* constraint, so the graph that TLC sees is the whole graph.              *)
(***************************************************************************)
EXTENDS MixedProperties

(***************************************************************************)
(* Clients. Two are the least that can speak two protocols.                *)
(***************************************************************************)
TwoClients   == {"c1", "c2"}
ThreeClients == {"c1", "c2", "c3"}

(***************************************************************************)
(* Member ids. Risk: runs with more restarts than ids are not there.       *)
(***************************************************************************)
TwoIds   == <<"m1", "m2">>
ThreeIds == <<"m1", "m2", "m3">>
FourIds  == <<"m1", "m2", "m3", "m4">>
FiveIds  == <<"m1", "m2", "m3", "m4", "m5">>

OnePartition  == <<"p1">>
TwoPartitions == <<"p1", "p2">>

(***************************************************************************)
(* Who is static.                                                          *)
(***************************************************************************)
AllDynamic  == [c \in Clients |-> ""]
FirstStatic == [c \in Clients |-> IF c = "c1" THEN "i1" ELSE ""]
AllStatic   == [c \in Clients |-> IF c = "c1" THEN "i1" ELSE "i2"]

(***************************************************************************)
(* Which protocols processes of a client speak.                            *)
(***************************************************************************)
AnyProtocol == {"classic", "consumer"}
OneOfEach   == [c \in Clients |-> IF c = "c1" THEN {"classic"} ELSE {"consumer"}]
FirstRolls  == [c \in Clients |-> IF c = "c1" THEN AnyProtocol ELSE {"classic"}]
AllRoll     == [c \in Clients |-> AnyProtocol]

(***************************************************************************)
(* What the environment may do.                                            *)
(***************************************************************************)
StartsOnly == {"ClientStarts"}
Leaves     == {"ClientStarts", "ClientLeaves"}
Crashes    == {"ClientStarts", "ClientCrashes"}
=============================================================================
