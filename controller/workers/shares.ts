import type { QueueBound } from "./queue.ts";
import type { Stand } from "./types.ts";

interface Room {
  /** Threads at once whose tasks do not stand still. */
  readonly threads: number;
  /** Threads besides, whose tasks stand still, or went on after others took their place. */
  readonly standingThreads: number;
}

/** What one tenant, or one part of a tenant, has at most. */
export interface ShareLimits extends QueueBound, Room {
  /** With n threads it gets another only while more than n are free around it. */
  readonly leavesRoom: boolean;
  /** Threads whose tasks stand still briefly and count as such; none when absent. */
  readonly brieflyThreads?: number;
}

/** A thread that is not idle. */
export interface Busy {
  /** As in `Queued`; empty for a thread that ends. */
  readonly path: readonly string[];
  readonly stands: Stand;
}

/** Threads of the pool, of a tenant or of a part of one. */
interface Use {
  all: number;
  /** Threads of its own tasks that do not stand still, without those of its parts. */
  own: number;
  /** Threads of its own tasks that stand still briefly. */
  brief: number;
  readonly parts: Map<string, Use>;
}

/**
 * Who has how many threads, and who may have one more. Where shares leave room, the last free threads are for those that
 * have none. Threads beyond a share, which a part has when tasks that stood still go on, count for that part alone.
 */
export class Shares {
  readonly #limits: readonly ShareLimits[];
  readonly #pool: Room;
  readonly #root: Use = noUse();

  constructor(pool: Room, limits: readonly ShareLimits[], busy: readonly Busy[]) {
    this.#limits = limits;
    this.#pool = pool;
    for (const one of busy) this.#count(one);
  }

  /** True while the pool has a thread for one more task. */
  get hasRoom(): boolean {
    const { threads, all } = this.#left(this.#pool, this.#root, 0);
    return threads > 0 && all > 0;
  }

  /** True when the last part of a path may have one more thread. The parts before it are to be asked, too. */
  mayBegin(path: readonly string[]): boolean {
    const level = path.length - 1;
    const share = this.#limits[level];
    if (share === undefined) return true;
    const around = this.#find(path.slice(0, level));
    const mine = around?.parts.get(path[level] ?? "");
    // The part before it has room for one more.
    if (around === undefined || mine === undefined) return true;
    const own = this.#left(share, mine, level + 1);
    if (own.threads <= 0 || own.all <= 0) return false;
    if (!share.leavesRoom) return true;
    const others = this.#left(this.#limits[level - 1] ?? this.#pool, around, level);
    return this.#held(mine, level + 1) < others.threads && mine.all < others.all;
  }

  /** What is free of a room; `level` is that of the parts within. */
  #left({ threads, standingThreads }: Room, used: Use, level: number): { threads: number; all: number } {
    return { threads: threads - this.#held(used, level), all: threads + standingThreads - used.all };
  }

  #held({ own, brief, parts }: Use, level: number): number {
    const most = this.#limits[level]?.threads ?? Number.POSITIVE_INFINITY;
    const brieflyMost = this.#limits[level - 1]?.brieflyThreads ?? 0;
    let held = own + Math.max(0, brief - brieflyMost);
    for (const part of parts.values()) held += Math.min(most, this.#held(part, level + 1));
    return held;
  }

  #find(path: readonly string[]): Use | undefined {
    let at: Use | undefined = this.#root;
    for (const name of path) at = at?.parts.get(name);
    return at;
  }

  #count({ path, stands }: Busy): void {
    let at = this.#root;
    at.all += 1;
    for (const name of path) {
      const part = at.parts.get(name) ?? noUse();
      at.parts.set(name, part);
      part.all += 1;
      at = part;
    }
    if (stands === "briefly") at.brief += 1;
    else if (!stands) at.own += 1;
  }
}

function noUse(): Use {
  return { all: 0, own: 0, brief: 0, parts: new Map() };
}
