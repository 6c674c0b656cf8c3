------------------------------ MODULE Ownership -----------------------------
(***************************************************************************)
(* The purpose of a group coordinator, without its means. It grants        *)
(* partitions to holders, epoch by epoch, and fences the holder of a lease *)
(* of an older epoch. There are no messages, no members, no timers.        *)
(*                                                                         *)
(* A lease may begin late and end late: a holder may keep believing in an  *)
(* old epoch (NOT-01). But it never shares a partition with another holder *)
(* of the same epoch.                                                      *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS
  Holders,  \* who may own: static members by instance id, others by member id
  Resources    \* what is owned: the partitions

ASSUME "" \notin Holders  \* it stands for no holder (Leases)
ASSUME Resources # {}

VARIABLE epoch   \* number of the last decision that can no longer be lost
TypeEpoch == epoch \in Nat

VARIABLE grant   \* that decision: who shall own what
TypeGrant == grant \in [Holders -> SUBSET Resources]

VARIABLE leases  \* what holders believe to own, or what is on its way to them
TypeLeases == leases \subseteq [holder : Holders, epoch : Nat, resources : SUBSET Resources]

ownership == <<epoch, grant, leases>>

EveryVariableHasItsType == TypeEpoch /\ TypeGrant /\ TypeLeases

Disjoint(g) == \A h, k \in Holders : h # k => g[h] \cap g[k] = {}

\* The leases that a decision gives.
GrantedLeases(e, g) == {[holder |-> h, epoch |-> e, resources |-> g[h]] : h \in Holders}

Init == /\ epoch = 0
        /\ grant = [h \in Holders |-> {}]
        /\ leases = {}

(***************************************************************************)
(* A later decision. Leases of earlier ones may survive it.                *)
(***************************************************************************)
Decide ==
  /\ epoch' \in Nat /\ epoch' > epoch
  /\ grant' \in [Holders -> SUBSET Resources]
  /\ Disjoint(grant')
  /\ leases' \in SUBSET (leases \cup GrantedLeases(epoch', grant'))

(***************************************************************************)
(* Holders take leases of the last decision, or give leases back.          *)
(***************************************************************************)
ChangeLeases ==
  /\ UNCHANGED <<epoch, grant>>
  /\ leases' \in SUBSET (leases \cup GrantedLeases(epoch, grant))

Next == Decide \/ ChangeLeases

Spec == Init /\ [][Next]_ownership

-----------------------------------------------------------------------------
NoResourceHasTwoHoldersInAnEpoch ==
  \A l, m \in leases :
    l.epoch = m.epoch /\ l.holder # m.holder => l.resources \cap m.resources = {}

\* A holder may commit for a resource that it has in a lease of the last epoch.
MayCommit(h, t) == \E l \in leases : /\ l.holder = h /\ l.epoch = epoch
                                     /\ t \in l.resources

NoResourceHasTwoCommitters ==
  \A t \in Resources : \A h, k \in Holders :
    MayCommit(h, t) /\ MayCommit(k, t) => h = k
=============================================================================
