----------------------------- MODULE MCGroupLog -----------------------------
(***************************************************************************)
(* Bounds of the log, each with what it cuts off; and witnesses.           *)
(***************************************************************************)
EXTENDS GroupLogProperties

(***************************************************************************)
(* Brokers. Two are the least that can disagree. Risk: a third that is     *)
(* neither leader nor in sync, while the other two go on; ThreeBrokers     *)
(* has that, with one record.                                              *)
(***************************************************************************)
TwoBrokers   == {"b1", "b2"}
ThreeBrokers == {"b1", "b2", "b3"}

(***************************************************************************)
(* Keys and values. A second key shows that one is cleaned without the     *)
(* other; a second value, that the right one of two is kept.               *)
(***************************************************************************)
OneKey    == {"k1"}
TwoKeys   == {"k1", "k2"}
OneValue  == {"x"}
TwoValues == {"x", "y"}

(***************************************************************************)
(* What the environment may do. Risk of a short list: what is left out     *)
(* does not combine with the rest.                                         *)
(***************************************************************************)
WritesOnly == {"ClientWrites"}

WhatCleanersDo == {"CleanerDropsRecord", "CleanerDropsTombstone"}

WhatTheClusterDoes == {"FollowerFallsBehind", "LeaderIsElected"}

WritesAndElections == WritesOnly \cup WhatTheClusterDoes

WritesAndCleaners == WritesOnly \cup WhatCleanersDo

Everything ==
  WritesOnly \cup WhatCleanersDo \cup WhatTheClusterDoes \cup {"WriteTimesOut"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" of something that must be reachable, so    *)
(* its configuration must fail.                                            *)
(***************************************************************************)

\* F-RT-09: a write of which the client was told nothing is replicated in the end.
NoWriteSurvivesItsTimeOut ==
  \A r \in Before(log[Leader], mark[Leader]) :
    \/ r \in acknowledged
    \/ \E q \in log[Leader] : q.key = r.key /\ q.offset > r.offset

\* F-CONS-07: two brokers have loaded, and both would answer.
OneCoordinatorAnswers ==
  \A b, o \in Brokers : b # o => ~(Leads(b) /\ Loaded(b) /\ Leads(o) /\ Loaded(o))

\* Even the last who was elected answers reads from the past: its high watermark
\* is behind what the one before it has acknowledged (F-RT-11).
TheLeaderReadsWhatIsStable ==
  Loaded(Leader) => Replay(log[Leader], mark[Leader]) = Replay(log[Leader], Committed)
=============================================================================
