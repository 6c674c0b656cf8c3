----------------------------- MODULE MCGroupLog -----------------------------
(***************************************************************************)
(* Bounds of the log, each with what it cuts off; and witnesses.           *)
(***************************************************************************)
EXTENDS GroupLogProperties

(***************************************************************************)
(* Brokers. Two are the least that can disagree. Risk: a third that is     *)
(* neither leader nor in sync while the other two continue; ThreeBrokers   *)
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
(* The faults that the environment may cause. Risk of a short list:        *)
(* omitted faults do not combine with the rest.                            *)
(***************************************************************************)
WritesOnly == {"ClientWrites"}

CleanerFaults == {"CleanerDropsRecord", "CleanerDropsTombstone"}

ClusterFaults == {"FollowerFallsBehind", "LeaderIsElected"}

WritesAndElections == WritesOnly \cup ClusterFaults

WritesAndCleaners == WritesOnly \cup CleanerFaults

AllFaults ==
  WritesOnly \cup CleanerFaults \cup ClusterFaults \cup {"WriteTimesOut"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" about something that must be reachable, so *)
(* its configuration must fail.                                            *)
(***************************************************************************)

\* A write whose client got no answer is replicated eventually (F-RT-09).
NoWriteSurvivesItsTimeOut ==
  \A r \in Before(log[Leader], highWatermark[Leader]) :
    \/ r \in acknowledged
    \/ \E q \in log[Leader] : q.key = r.key /\ q.offset > r.offset

\* Two brokers have loaded, and both would answer (F-CONS-07).
NoTwoCoordinatorsEverAnswer ==
  \A b, o \in Brokers : b # o => ~(IsLeader(b) /\ Loaded(b) /\ IsLeader(o) /\ Loaded(o))

\* Even the leader elected last answers reads from the past: its high watermark
\* is behind what its predecessor has acknowledged (F-RT-11).
TheLeaderNeverReadsOldState ==
  Loaded(Leader) => Replay(log[Leader], highWatermark[Leader]) = Replay(log[Leader], Committed)
=============================================================================
