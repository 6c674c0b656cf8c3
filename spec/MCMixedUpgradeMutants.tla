------------------------ MODULE MCMixedUpgradeMutants ------------------------
(***************************************************************************)
(* An upgrade after a late JoinGroup. From the initial state of MixedGroup *)
(* it takes three clients, one copy of a request, 36 steps and 2.5 million *)
(* states (Fencepost's model found this run). So this run starts shortly   *)
(* before the upgrade.                                                     *)
(***************************************************************************)
EXTENDS MCMixedMutants

\* m2 had p1, gave it up and joined again; p1 is assigned to m1. Then a copy of an
\* earlier JoinGroup of m2 arrived, in which it claims p1, and the group rebalances
\* (C-JOIN-54).
LateJoin ==
  LET Joined(owned, generation, assignment, awaitingJoin) ==
        [instanceId |-> "", metadata |-> [owned |-> owned, generation |-> generation],
         assignment |-> assignment, isNew |-> FALSE,
         awaitingJoin |-> awaitingJoin, awaitingSync |-> "no"]
      m1 == Joined({}, 2, {"p1"}, "no")
      m2 == Joined({"p1"}, 1, {}, "nobody")
  IN [NoClassicGroup EXCEPT
        !.state = "PreparingRebalance", !.generationId = 3, !.leader = "m1",
        !.members = [m \in {"m1", "m2"} |-> IF m = "m1" THEN m1 ELSE m2],
        !.joinTimer = TRUE, !.sessionTimers = {"m1", "m2"}]

StableClient(id, owned) ==
  [state |-> "stable", memberId |-> id, generation |-> 3, owned |-> owned,
   ownedGeneration |-> IF owned = {} THEN -1 ELSE 3]

LateJoinInit ==
  /\ group = ClassicGroup(LateJoin)
  /\ log = ClassicLog(Classic!RecordOf(LateJoin))
  /\ idsUsed = 2
  /\ classic = [c \in Clients |-> CASE c = "c1" -> StableClient("m1", {"p1"})
                                    [] c = "c2" -> StableClient("m2", {})
                                    [] OTHER    -> ClassicMember!Ended("down")]
  /\ consumer = [c \in Clients |-> ConsumerMember!Ended("down")]
  /\ requests = {}
  /\ replies = {}
  /\ faultsLeft = AllFaultsLeft

LateJoinSpec == LateJoinInit /\ [][Next]_vars
=============================================================================
