--------------------------- MODULE MCMixedMutants ---------------------------
(***************************************************************************)
(* The mixed group with one guard taken away at a time: each operator      *)
(* stands in for one of the specification by an override in a              *)
(* configuration that must fail. Faults that Kafka itself has need no      *)
(* stand-in; they are switches.                                            *)
(***************************************************************************)
EXTENDS MCMixedGroup

\* For Granted: X-SYNC-06 with what is meant for the member, held by others or not.
ToldItsTarget(g, m) == Consumer!Stored(g.consumer, m)

\* For SaidToBeOwned: every join counts as that of an eager member (X-JOIN-11).
NothingIsOwned(metadata) == {}

\* For Consumer!Obtainable: M-REC-11 forgotten, what is wanted is taken.
TakesWhatIsHeld(g, m, wanted) == wanted

\* For Consumer!TargetEpoch: who is reconciled while computing is blocked gets ahead.
GroupEpochAsTarget(g) == g.groupEpoch

\* For EpochCommits: M-PE-08 forgotten.
AnyEpochCommits(m, epoch, p) == TRUE

\* For EpochCommits: M-PE-08 forgotten, only the newest epoch will do.
OnlyTheEpochCommits(m, epoch, p) == epoch = m.epoch

\* For Classic!CommitError: O-COMMIT-25 without the generation.
CommitErrorWithoutGeneration(g, id, inst, generation) ==
  CASE Classic!Fence(g, id, inst) # "" -> Classic!Fence(g, id, inst)
    [] g.state = "CompletingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For Classic!CommitError: O-COMMIT-27 taken too far, a rebalance refuses from its start.
CommitErrorWhilePreparing(g, id, inst, generation) ==
  CASE Classic!Fence(g, id, inst) # "" -> Classic!Fence(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state # "Stable" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For ClassicFence: X-SYNC-03 and X-HB-01 without the generation.
AnyGeneration(g, id, inst, generation) ==
  IF id \in DOMAIN g.subscriptions THEN "" ELSE "UNKNOWN_MEMBER_ID"

\* For Brought: X-UP-05 forgotten, a member comes with empty hands.
BringsNothing(g, m) == {}

\* For TimersOf: X-UP-08 forgotten.
NoTimers(M) == {}

\* For Released: X-UP-03 forgotten.
NobodyIsReleased(g) == Classic!World(g)

\* For DowngradedEpoch: X-DOWN-03 forgotten, the classic group starts anew.
StartsAnew(g) == 1

\* For ClassicMemberOf: X-DOWN-04 forgotten.
GoesWithNothing(g, m) ==
  [instanceId |-> g.consumer.members[m].instanceId, metadata |-> g.subscriptions[m],
   assignment |-> {}, isNew |-> FALSE, awaitingJoin |-> "no", awaitingSync |-> "no"]

\* For Redistributed: X-DOWN-06 forgotten, the group stays Stable.
StaysStable(stable) == Classic!World(stable)

\* For MayDowngrade: X-POL forgotten.
AlwaysMay == TRUE

\* For Expecting: a client that never stops waiting (K-ERR-13, N-ERR-06).
ExpectsForEver(c) == TRUE
=============================================================================
