-------------------------- MODULE MCConsumerMutants -------------------------
(***************************************************************************)
(* The consumer group with one guard taken away at a time: each operator   *)
(* stands in for one of the specification by an override in a              *)
(* configuration that must fail. Faults that Kafka itself has need no      *)
(* stand-in; they are switches.                                            *)
(***************************************************************************)
EXTENDS MCConsumerGroup

\* For Obtainable: M-REC-11 forgotten, what is wanted is taken.
TakesWhatIsHeld(g, m, wanted) == wanted

\* For MustRevoke: M-REC-10 forgotten, what is lost is free at once.
NobodyMustRevoke(r, lost) == FALSE

\* For Confirms: M-REC-18 forgotten, any heartbeat confirms.
AnythingConfirms(r, m) == TRUE

\* For OlderEpochCommits: M-PE-08 without assignment epochs.
AnyOlderEpochCommits(m, epoch, p) == TRUE

\* For OlderEpochCommits: M-PE-08 forgotten, only the newest epoch will do.
NoOlderEpochCommits(m, epoch, p) == FALSE

\* For TargetEpoch: who is reconciled while computing is blocked gets ahead.
GroupEpochAsTarget(g) == g.groupEpoch

\* For GrantEpoch: M-PE-06 with the group epoch.
GrantedAtGroupEpoch(g, t) == g.groupEpoch

\* For Kept: M-REC-10 without taking away.
KeepsWhatItRevokes(held, T) == held

\* For StillRevoking: M-REC-12 without an end.
RevokesForEver(m) == m.revoking

\* For EpochVerdict: M-FENCE-03 and M-FENCE-05 forgotten.
AnyEpochIsCurrent(m, r) == "known"

\* For Tells: M-RSP-01 for full requests only.
TellsWhoAsks(before, after, r) == r.full

\* For AtOnce: M-HB-11 forgotten.
AllAtOnce(answers) == answers

\* For Loaded: a coordinator that starts from nothing (F-LOAD-01 forgotten).
LoadedFromNothing(h, blocked) ==
  [groupEpoch |-> 1, assignmentEpoch |-> 1, hashed |-> 0, members |-> << >>,
   target |-> << >>, instances |-> << >>, rebalanceTimers |-> << >>,
   sessionTimers |-> {}, blocked |-> FALSE]

\* For SessionExpired: a member goes without a bump (M-EPOCH-04).
GoesSilently(g, id, n) ==
  [Departed(g, id, n) EXCEPT !.groupEpoch = g.groupEpoch]

\* For Expecting: a client that never stops waiting (N-ERR-06).
ExpectsForEver(c) == TRUE

\* For Surviving: what was replicated may be lost with what was not.
SurvivesOnlyIfOpen(k) == IF k = 0 THEN NewGroup ELSE unreplicated[k].hard
=============================================================================
