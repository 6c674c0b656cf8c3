-------------------------- MODULE ConsumerOwnership -------------------------
(***************************************************************************)
(* The consumer group refines Ownership. What a member holds (A and R)     *)
(* changes partition by partition while no epoch of the group moves, so    *)
(* the number of a decision is not to be read from a state; a history      *)
(* variable counts how often the replicated holdings have changed. It      *)
(* says nothing back to the group.                                         *)
(*                                                                         *)
(* The lease of a holder is what it is granted; a client that believes to  *)
(* own more than that is a lease that nobody gave. Clients whose member    *)
(* was fenced have none (NOT-01).                                          *)
(***************************************************************************)
EXTENDS MCConsumerMutants

VARIABLE decision  \* how often what is granted has changed
TypeDecision == decision \in Nat

\* Static members are one holder over their restarts, others one per id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id

GrantedBy(h) ==
  [k \in Ids \cup Instances |->
     UNION {Holding(h.members[m]) : m \in {n \in DOMAIN h.members :
                                             Identity(n, h.members[n].instanceId) = k}}]

Believers == {c \in Clients : /\ Runs(c) /\ client[c].owned # {}
                              /\ client[c].memberId \in DOMAIN log.members}

Lease(c) ==
  LET holder == Identity(client[c].memberId, client[c].instanceId)
      granted == GrantedBy(log)[holder]
  IN [holder |-> holder, epoch |-> decision,
      things |-> IF client[c].owned \subseteq granted THEN granted ELSE client[c].owned]

CountedInit == Init /\ decision = 0

CountedNext ==
  /\ Next
  /\ decision' = IF GrantedBy(log') = GrantedBy(log) THEN decision ELSE decision + 1

CountedSpec == CountedInit /\ [][CountedNext]_<<vars, decision>>

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Things <- Parts,
  epoch <- decision, grant <- GrantedBy(log), leases <- {Lease(c) : c \in Believers}

TheGroupKeepsOwnership == Abstract!Spec
=============================================================================
