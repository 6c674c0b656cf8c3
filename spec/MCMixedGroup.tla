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
OneClient    == {"c1"}
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
AllDynamic   == [c \in Clients |-> ""]
FirstStatic  == [c \in Clients |-> IF c = "c1" THEN "i1" ELSE ""]

(***************************************************************************)
(* Which protocols processes of a client speak. Risk of one each: nobody   *)
(* changes; of AllRoll: none, but the graph is large.                      *)
(***************************************************************************)
AnyProtocol == {"classic", "consumer"}
OneOfEach   == [c \in Clients |-> IF c = "c1" THEN {"classic"} ELSE {"consumer"}]
FirstRolls  == [c \in Clients |-> IF c = "c1" THEN AnyProtocol ELSE {"classic"}]
AllClassic  == [c \in Clients |-> {"classic"}]
LastOtherwise == [c \in Clients |-> IF c = "c3" THEN {"consumer"} ELSE {"classic"}]
AllRoll     == [c \in Clients |-> AnyProtocol]

(***************************************************************************)
(* What the environment may do. Risk of a short list: none of the other    *)
(* faults combines with those listed.                                      *)
(***************************************************************************)
StartsOnly == {"ClientStarts"}

StartsAndCommits == StartsOnly \cup {"ClientCommits"}

WhatClientsDo == {"ClientStarts", "ClientCrashes", "ClientLeaves", "ClientGivesUp"}

WhatTimersDo == {"JoinTimerFiresEarly", "SyncTimerFiresEarly", "SessionTimerFiresEarly",
                 "RebalanceTimerFiresEarly", "MemberJoinTimerFiresEarly",
                 "MemberSyncTimerFiresEarly"}

EverythingButCopies ==
  WhatClientsDo \cup WhatTimersDo \cup {"RequestLost", "ReplyLost", "CoordinatorFailsOver"}

\* Faults of one kind, where the point of a configuration is that kind.
Leaves   == {"ClientStarts", "ClientLeaves"}
LeavesAndCommits == Leaves \cup {"ClientCommits"}
Crashes  == {"ClientStarts", "ClientCrashes"}
Endings  == {"ClientStarts", "ClientLeaves", "ClientCrashes"}
Losses   == {"ClientStarts", "RequestLost", "ReplyLost"}
Copies   == {"ClientStarts", "RequestDuplicated"}
Stalls   == {"ClientStarts"} \cup WhatTimersDo
CopiesAndSessions == Copies \cup {"SessionTimerFiresEarly"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" of something that must be reachable, so    *)
(* its configuration must fail. A property that holds because nothing      *)
(* happens would be caught here.                                           *)
(***************************************************************************)

\* X-ROLL-02: members of both protocols own at the same time.
NoGroupIsEverMixed ==
  ~ \E c, d \in Clients : /\ RunsClassic(c) /\ RunsConsumer(d)
                          /\ InStep(c) /\ InStep(d)
                          /\ Owned(c) # {} /\ Owned(d) # {}

\* X-JOIN-17
NoClassicMemberEverHasToRevoke ==
  \A m \in DOMAIN group.subscriptions : Member(m).state # "UNREVOKED"

\* X-DOWN-01
NoGroupIsEverDowngraded == [][~IsDowngrade]_vars
=============================================================================
