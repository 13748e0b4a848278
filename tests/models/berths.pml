/* Two nodes that send to one another: berths, receive slots, "receiver not ready", answers. Packets
 * are not lost here; tests/sim covers that. For all orders of steps, spin shows that nothing
 * overflows, there is no deadlock, and each work ends if applications continue to poll.
 *
 * Faults that the model must find:
 *   -DONE_QUEUE         answers wait behind requests, in one queue
 *   -DONE_ANSWER        there is room for fewer answers than there are berths
 *   -DNO_PERMIT         arrivals have no reservation in the completion queue
 *   -DNEVER_POLLS       an application does not poll its messages (its peer's works do not end)
 */
#ifndef BERTHS
#define BERTHS 2
#endif
#define SLOTS 1
#define WORKS 3
#define LINE 1 /* requests in flight to one node */

mtype = { vacant, posted, away, waiting, completed };
mtype = { request, executed, not_ready };

#ifdef ONE_ANSWER
#define ANSWERS (BERTHS - 1)
#else
#define ANSWERS BERTHS
#endif

#ifdef ONE_QUEUE
chan requests[2] = [LINE] of { mtype, byte };
#define answers(node) requests[node]
#else
chan requests[2] = [LINE] of { mtype, byte };
chan answer_line[2] = [ANSWERS] of { mtype, byte };
#define answers(node) answer_line[node]
#endif

typedef Node {
  mtype berth[BERTHS];
  byte free_slots;
  byte arrived;   /* messages that wait to be polled; each holds a slot */
  byte entries;   /* of the JFC that are in use */
  byte left;      /* works still to be posted */
  byte ended;     /* works whose completions were polled */
  byte received;  /* messages that were polled */
};
Node node[2];

#ifdef NO_PERMIT
#define ENTRIES BERTHS
#else
#define ENTRIES (BERTHS + SLOTS)
#endif
inline tell(me) {
  assert(node[me].entries < ENTRIES);
  node[me].entries++;
}

/* Queues an answer. Each request holds a berth, and there is room for as many answers. */
inline answer(me, how, b) {
#ifdef ONE_QUEUE
  answers(1 - me)!how(b);
#else
  assert(nfull(answers(1 - me)));
  answers(1 - me)!how(b);
#endif
}

inline take_answer(me, how, b) {
  assert(node[me].berth[b] == away);
  if
  :: how == executed -> node[me].berth[b] = completed; tell(me)
  :: how == not_ready -> node[me].berth[b] = waiting
  fi
}

inline take_request(me, b) {
  if
  :: node[me].free_slots > 0 ->
     atomic {
       node[me].free_slots--;
       node[me].arrived++;
       tell(me)
     };
     answer(me, executed, b)
  :: node[me].free_slots == 0 -> answer(me, not_ready, b)
  fi
}

proctype Engine(byte me) {
  byte b;
  mtype how;
end:
  do
  :: atomic { requests[me]?[request, b] -> requests[me]?request(b) };
     take_request(me, b)
#ifdef ONE_QUEUE
  :: requests[me]?executed(b) -> take_answer(me, executed, b)
  :: requests[me]?not_ready(b) -> take_answer(me, not_ready, b)
#else
  :: atomic { nempty(answers(me)) -> answers(me)?how(b); take_answer(me, how, b) }
#endif
  :: atomic { nfull(requests[1 - me]) && node[me].berth[0] == posted ->
     node[me].berth[0] = away; requests[1 - me]!request(0) }
  :: atomic { nfull(requests[1 - me]) && node[me].berth[BERTHS - 1] == posted ->
     node[me].berth[BERTHS - 1] = away; requests[1 - me]!request(BERTHS - 1) }
  /* The timer: the request is sent again. */
  :: atomic { node[me].berth[0] == waiting -> node[me].berth[0] = posted }
  :: atomic { node[me].berth[BERTHS - 1] == waiting -> node[me].berth[BERTHS - 1] = posted }
  od
}

/* The application may stop at any step, for any time, but not for ever. A handler posts before it
 * polls again; if it cannot post, it polls. */
proctype Application(byte me) {
  do
  :: atomic { node[me].left > 0 && node[me].berth[0] == vacant ->
     node[me].berth[0] = posted; node[me].left-- }
  :: atomic { node[me].left > 0 && node[me].berth[BERTHS - 1] == vacant ->
     node[me].berth[BERTHS - 1] = posted; node[me].left-- }
  :: atomic { node[me].berth[0] == completed ->
     node[me].berth[0] = vacant; node[me].entries--; node[me].ended++ }
  :: atomic { node[me].berth[BERTHS - 1] == completed ->
     node[me].berth[BERTHS - 1] = vacant; node[me].entries--; node[me].ended++ }
#ifndef NEVER_POLLS
  :: atomic { node[me].arrived > 0 ->
     node[me].arrived--; node[me].entries--; node[me].free_slots++; node[me].received++ }
#endif
  :: node[me].ended == WORKS && node[me].received == WORKS -> break
  od
}

#define all_ended (node[0].ended == WORKS && node[1].ended == WORKS)
#ifdef LIVE
ltl each_work_ends { <> all_ended }
#endif

init {
  byte i;
  byte b;
  atomic {
    for (i : 0 .. 1) {
      for (b : 0 .. BERTHS - 1) { node[i].berth[b] = vacant }
      node[i].free_slots = SLOTS;
      node[i].left = WORKS;
    }
    run Engine(0); run Engine(1); run Application(0); run Application(1)
  }
}
