import type { Solution } from "./solution.ts";
import type { Link } from "./types.ts";
import { isWhole, onward, starts, type Way } from "./ways.ts";

/** All ways from one start that reached the same state with the same number of edges. */
interface Meeting {
  readonly state: Way;
  readonly came: { readonly from: Meeting; readonly link: Link | undefined }[];
}

/**
 * The ways with the fewest edges for each pair of a start and an end. Also yields undefined at every step, so that it
 * can be interrupted.
 */
export function* shortest(solution: Solution): Generator<Way | undefined> {
  for (const start of starts(solution)) yield* shortestFrom(start, solution);
}

function* shortestFrom(start: Way, solution: Solution): Generator<Way | undefined> {
  const first: Meeting = { state: start, came: [] };
  const met = new Map([[nameOf(start, solution), first]]);
  // Grows during the loop: ways one edge longer come after all shorter ones.
  const queue = [first];
  for (const meeting of queue) {
    yield undefined;
    for (const next of onward(meeting.state, solution)) {
      const name = nameOf(next, solution);
      const known = met.get(name);
      const came = { from: meeting, link: next.link };
      if (known?.state.length === next.length) known.came.push(came);
      if (known !== undefined) continue;
      const made: Meeting = { state: next, came: [came] };
      met.set(name, made);
      queue.push(made);
    }
  }
  for (const meeting of queue) if (isWhole(meeting.state, solution)) yield* waysTo(meeting);
}

/**
 * Name of the state of a way. If a hop has no limit of edges, it only matters if the way passed an edge of the hop, not
 * how many.
 */
function nameOf({ hop, depth, vertex }: Way, { hops }: Solution): string {
  return `${hop} ${hops[hop]?.depth === Infinity ? Math.min(depth, 1) : depth} ${vertex.ref.number}`;
}

/** The way from a meeting to the end, starting at the meeting. */
interface Remainder {
  readonly meeting: Meeting;
  readonly link: Link | undefined;
  readonly next: Remainder | undefined;
}

function* waysTo(end: Meeting): Generator<Way | undefined> {
  const open: Remainder[] = [{ meeting: end, link: undefined, next: undefined }];
  for (let remainder = open.pop(); remainder !== undefined; remainder = open.pop()) {
    yield remainder.meeting.came.length === 0 ? wayAlong(remainder) : undefined;
    for (const { from, link } of remainder.meeting.came) open.push({ meeting: from, link, next: remainder });
  }
}

function wayAlong(from: Remainder): Way {
  let way: Way = { ...from.meeting.state, before: undefined, link: undefined };
  for (let at = from; at.next !== undefined; at = at.next)
    way = { ...at.next.meeting.state, before: way, link: at.link };
  return way;
}
