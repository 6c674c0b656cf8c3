---------------------------- MODULE TraceReading ----------------------------
(***************************************************************************)
(* The lines of recorded traces, and how far they are read. TraceClassic   *)
(* and TraceConsumer extend it with the steps of a coordinator.            *)
(*                                                                         *)
(* Module TraceData holds the traces, generated from their files: the      *)
(* requests about one group, and a line for each moment at which the       *)
(* recorder saw a request or an answer. A run of TLC may have several      *)
(* traces; a behaviour reads one of them.                                  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TraceData, TLC

(***************************************************************************)
(* How to search. "report" allows every behaviour. "full" drops one as     *)
(* soon as it gives an answer that the trace does not have; "report" drops *)
(* it at the line of that answer. "quick" also handles requests in one     *)
(* order only, so it may overlook an explanation, but finds most of them   *)
(* in few states.                                                          *)
(***************************************************************************)
CONSTANT Search

ASSUME Search \in {"quick", "full", "report"}

VARIABLE trace  \* which trace is read
VARIABLE at     \* the number of its next line; Len(Lines) + 1 at the end

ReadingStarts == trace \in 1..Len(Traces) /\ at = 1

Lines    == Traces[trace].lines
Requests == Traces[trace].requests  \* name -> request; the name has the line at which it was sent
Answers  == Traces[trace].answers   \* name -> the answer and the number of its line; some have none

RequestNames      == UNION {DOMAIN Traces[t].requests : t \in 1..Len(Traces)}
TraceOf(q)        == CHOOSE t \in 1..Len(Traces) : q \in DOMAIN Traces[t].requests
InstanceInRequest == [q \in RequestNames |-> Traces[TraceOf(q)].requests[q].instanceId]

HasAnswer(q) == q \in DOMAIN Answers
IsRead(q)    == HasAnswer(q) /\ Answers[q].number < at

HasMoreLines == at <= Len(Lines)
Line         == Lines[at]
IsAnswer     == HasMoreLines /\ Line.type = "received"

(***************************************************************************)
(* Hidden steps happen between the last answer and the next one. Requests  *)
(* that were sent in between only make more steps possible, so a hidden    *)
(* step may wait until the next answer.                                    *)
(***************************************************************************)
LatestTime == Line.time
EarliestTime ==
  LET before == {i \in 1..(at - 1) : Lines[i].type = "received"}
  IN IF before = {} THEN 0 ELSE Lines[CHOOSE i \in before : \A k \in before : k <= i].time

\* A timer does not fire early: the trace has times, and each timer a length. It may fire late, since
\* the trace does not show when.
HasExpired(since, length) == LatestTime + Traces[trace].tolerance >= since + length

\* A broker that stops may give up its groups ten seconds before the sign of it: it closes a
\* connection, or says that it is not the coordinator.
MayFailOver == \E sign \in Traces[trace].signs : LatestTime >= sign - 10000

NotHere == {"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}

\* The broker answers the requests of a connection in their order, so an answer to q shows
\* that these were answered before.
MissingBefore(q) ==
  {p \in DOMAIN Requests :
    /\ Requests[p].connection = Requests[q].connection
    /\ Requests[p].number < Requests[q].number
    /\ ~IsRead(p)}

\* No request of the same connection, sent before q, is among these: a connection handles one request
\* at a time, in order (F-RT-16).
IsNextOfConnection(q, names) ==
  \A p \in names : Requests[p].connection = Requests[q].connection
                     => Requests[p].number >= Requests[q].number

(***************************************************************************)
(* The furthest line (register 1), and what is possible there (register    *)
(* 2), for the report of a trace that no behaviour explains. Register 3    *)
(* has the traces that are explained, which need no further search.        *)
(***************************************************************************)
ASSUME TLCSet(1, 0) /\ TLCSet(2, {}) /\ TLCSet(3, {})

Missing == IF IsAnswer THEN MissingBefore(Line.request) ELSE {}

\* The constraint of a search; replies are the answers that have been given.
ShowProgress(replies) ==
  LET possible == IF IsAnswer THEN {y \in replies : y.to = Line.request} ELSE {}
  IN /\ trace \notin TLCGet(3)
     /\ ~HasMoreLines => TLCSet(3, TLCGet(3) \cup {trace}) /\ PrintT([explained |-> trace])
     /\ at > TLCGet(1) /\ Len(Traces) = 1 =>
          TLCSet(1, at) /\ TLCSet(2, {}) /\ PrintT([reached |-> at, missing |-> Missing])
     /\ at = TLCGet(1) /\ ~(possible \subseteq TLCGet(2)) =>
          TLCSet(2, TLCGet(2) \cup possible) /\ PrintT([reached |-> at, possible |-> possible])

\* For one trace: "violated" means that it is explained, by the behaviour that TLC prints.
TheTraceIsNotExplained == HasMoreLines
=============================================================================
