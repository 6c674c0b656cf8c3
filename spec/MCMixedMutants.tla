--------------------------- MODULE MCMixedMutants ---------------------------
(***************************************************************************)
(* The mixed group with one guard removed at a time: in a configuration    *)
(* that must fail, each operator overrides one of the specification.       *)
(* Faults of Kafka itself need no override; they are switches.             *)
(***************************************************************************)
EXTENDS MCMixedGroup

\* For Granted: SyncGroup returns the target, even if others hold parts of it
\* (X-SYNC-06).
ToldItsTarget(g, m) == Consumer!Stored(g.consumer, m)

\* For SaidToBeOwned: every join counts as that of an eager member (X-JOIN-11).
NothingIsOwned(metadata) == {}

\* For Consumer!Obtainable: a wanted partition is taken although another member
\* holds it (M-REC-11).
TakesWhatIsHeld(g, m, wanted) == wanted

\* For Consumer!TargetEpoch: a member that is reconciled while computing is
\* blocked gets ahead of the target.
GroupEpochAsTarget(g) == g.groupEpoch

\* For EpochCommits: the epoch is not checked (M-PE-08).
AnyEpochCommits(m, epoch, p) == TRUE

\* For EpochCommits: only the newest epoch passes (M-PE-08).
OnlyTheEpochCommits(m, epoch, p) == epoch = m.epoch

\* For Classic!CommitError: the generation is not checked (O-COMMIT-25).
CommitErrorWithoutGeneration(g, id, inst, generation) ==
  CASE Classic!Fence(g, id, inst) # "" -> Classic!Fence(g, id, inst)
    [] g.state = "CompletingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For Classic!CommitError: a rebalance refuses commits from its start, not only
\* while completing (O-COMMIT-27).
CommitErrorWhilePreparing(g, id, inst, generation) ==
  CASE Classic!Fence(g, id, inst) # "" -> Classic!Fence(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state # "Stable" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For ClassicFence: the generation is not checked (X-SYNC-03, X-HB-01).
AnyGeneration(g, id, inst, generation) ==
  IF id \in DOMAIN g.subscriptions THEN "" ELSE "UNKNOWN_MEMBER_ID"

\* For Brought: a member is converted without its partitions (X-UP-05).
BringsNothing(g, m) == {}

\* For TimersOf: no session timers are started (X-UP-08).
NoTimers(M) == {}

\* For Released: parked requests are not answered (X-UP-03).
NobodyIsReleased(g) == Classic!World(g)

\* For DowngradedEpoch: the classic group starts at generation 1 (X-DOWN-03).
StartsAnew(g) == 1

\* For ClassicMemberOf: a member is converted without an assignment (X-DOWN-04).
GoesWithNothing(g, m) ==
  [instanceId |-> g.consumer.members[m].instanceId, metadata |-> g.subscriptions[m],
   assignment |-> {}, isNew |-> FALSE, awaitingJoin |-> "no", awaitingSync |-> "no"]

\* For Redistributed: the group stays Stable (X-DOWN-06).
StaysStable(stable) == Classic!World(stable)

\* For MayDowngrade: the policy is not asked (X-POL).
AlwaysMay == TRUE

\* For Expecting: a client never stops waiting (K-ERR-13, N-ERR-06).
ExpectsForEver(c) == TRUE
=============================================================================
