---------------------------- MODULE ClassicClient ---------------------------
(***************************************************************************)
(* The client as functions: what it prepares before JoinGroup, how an      *)
(* answer changes it, what it assigns as leader. Its rules are K-*, those  *)
(* of assignors A-*.                                                       *)
(***************************************************************************)
EXTENDS ClassicTypes

(***************************************************************************)
(* A client learns that it was fenced (K-ERR-04, K-ERR-05). It gives up    *)
(* its partitions in the same step. The time before it learns of its       *)
(* removal, which NOT-01 is about, is part of the model.                   *)
(***************************************************************************)
Reset(p, id) == [p EXCEPT !.state = "unjoined", !.memberId = id,
                          !.generation = -1,
                          !.owned = {}, !.ownedGeneration = -1]

\* Join prepare: an eager client, or one without a generation, gives up its
\* partitions before it joins (K-CB-02..04).
AfterJoinPrepare(p) ==
  IF ~Cooperative \/ p.generation = -1
  THEN [p EXCEPT !.owned = {}, !.ownedGeneration = -1] ELSE p

\* The metadata that a prepared client sends (K-JOIN-12).
JoinMetadata(p) ==
  [owned |-> p.owned,
   generation |-> IF MetadataHasGeneration THEN p.generation ELSE -1]

(***************************************************************************)
(* An error answer to JoinGroup, SyncGroup or Heartbeat (K-ERR-03..08,     *)
(* 10).                                                                    *)
(***************************************************************************)
AfterError(p, error) ==
  CASE error = "UNKNOWN_MEMBER_ID"  -> Reset(p, "")
    [] error = "ILLEGAL_GENERATION" -> Reset(p, p.memberId)
    [] error \in {"FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"}
                                    -> Ended("stopped")
    [] error \in {"REBALANCE_IN_PROGRESS", "NOT_COORDINATOR",
                  "COORDINATOR_NOT_AVAILABLE"}
                                    -> [p EXCEPT !.state = "unjoined"]

\* MEMBER_ID_REQUIRED: the client keeps the given id and joins again (K-ERR-07).
AfterMemberIdRequired(p, id) == [p EXCEPT !.state = "unjoined", !.memberId = id,
                                          !.generation = -1]

\* JoinGroup was answered NONE: the client takes id and generation, then syncs
\* (K-ERR-01, K-ST-11).
AfterJoin(p, y) == [p EXCEPT !.state = "syncing", !.memberId = y.memberId,
                             !.generation = y.generation]

(***************************************************************************)
(* SyncGroup was answered NONE: the client takes its assignment. A         *)
(* cooperative client that has to give something up joins again (K-ST-12,  *)
(* K-CB-05, K-CB-06).                                                      *)
(***************************************************************************)
AfterSync(p, assignment) ==
  LET revokes == Cooperative /\ ~(p.owned \subseteq assignment)
  IN [p EXCEPT !.state = IF revokes THEN "unjoined" ELSE "stable",
               !.owned = assignment,
               !.ownedGeneration = IF assignment = {} THEN -1 ELSE p.generation]

-----------------------------------------------------------------------------
(***************************************************************************)
(* The leader's assignment. M is the member list of its JoinGroup answer.  *)
(***************************************************************************)
IdsIn(M) == {l.memberId : l \in M}
MetadataOf(M, m) == (CHOOSE l \in M : l.memberId = m).metadata

\* The members in the order of MemberIds, as a sequence.
InOrder(S) == SelectSeq(MemberIds, LAMBDA m : m \in S)

\* The functions partition -> member that the assignor may choose.
Targets(M) ==
  LET order == InOrder(IdsIn(M))
      Index(p) == CHOOSE i \in 1..Len(Partitions) : Partitions[i] = p
  IN IF Assignor = "any" THEN [Parts -> IdsIn(M)]
     ELSE {[p \in Parts |-> order[((Index(p) - 1) % Len(order)) + 1]]}

\* The claim of the newest generation counts, and only if no other claim has
\* that generation (A-COOP-05, A-STICKY-04).
HasValidClaim(M, m, p) ==
  /\ p \in MetadataOf(M, m).owned
  /\ \A n \in IdsIn(M) \ {m} :
       p \in MetadataOf(M, n).owned =>
         MetadataOf(M, n).generation < MetadataOf(M, m).generation

\* A partition that another member holds is not given away in this round
\* (A-COOP-01).
IsWithheld(M, m, p) ==
  Cooperative /\ \E n \in IdsIn(M) \ {m} : HasValidClaim(M, n, p)

Assignments(M) ==
  {{[memberId |-> m,
     partitions |-> {p \in Parts : target[p] = m /\ ~IsWithheld(M, m, p)}]
    : m \in IdsIn(M)} : target \in Targets(M)}
=============================================================================
