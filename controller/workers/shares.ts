import type { QueueBound } from "./queue.ts";
import type { Stand } from "./types.ts";

interface Room {
  /** Maximum number of threads whose tasks are not blocked. */
  readonly threads: number;
  /** Maximum number of additional threads whose tasks are blocked, or continued after other tasks took their place. */
  readonly standingThreads: number;
}

/** Bounds of one tenant, or of one part of a tenant. */
export interface ShareLimits extends QueueBound, Room {
  /**
   * True if a share must leave threads for others: with n threads it gets another one only while more than n are free
   * in the enclosing share, or in the pool.
   */
  readonly leavesRoom: boolean;
  /** Maximum number of threads that count as blocked while their tasks are blocked briefly; 0 if absent. */
  readonly brieflyThreads?: number;
}

/** A thread that is not idle. */
export interface Busy {
  /** As in `Queued`; empty for an ending thread. */
  readonly path: readonly string[];
  readonly stands: Stand;
}

/** Threads used by the pool, by a tenant or by a part of one. */
interface Use {
  all: number;
  /** Threads of its own tasks that are not blocked, without those of its parts. */
  own: number;
  /** Threads of its own tasks that are blocked briefly. */
  brief: number;
  readonly parts: Map<string, Use>;
}

/**
 * Counts the threads of each share and decides who may have one more. If shares leave room, the last free threads are
 * for shares that have none. A share may exceed its bound when blocked tasks continue; these threads count for that
 * share only.
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

  /** True if the pool has a thread for one more task. */
  get hasRoom(): boolean {
    const { threads, all } = this.#left(this.#pool, this.#root, 0);
    return threads > 0 && all > 0;
  }

  /** Returns true if the last part of a path may have one more thread. Check the preceding parts as well. */
  mayBegin(path: readonly string[]): boolean {
    const level = path.length - 1;
    const share = this.#limits[level];
    if (share === undefined) return true;
    const around = this.#find(path.slice(0, level));
    const mine = around?.parts.get(path[level] ?? "");
    // A path without threads: the enclosing share has room for one more.
    if (around === undefined || mine === undefined) return true;
    const own = this.#left(share, mine, level + 1);
    if (own.threads <= 0 || own.all <= 0) return false;
    if (!share.leavesRoom) return true;
    const others = this.#left(this.#limits[level - 1] ?? this.#pool, around, level);
    return this.#held(mine, level + 1) < others.threads && mine.all < others.all;
  }

  /** Free threads of a room. `level`: the level of the parts inside it. */
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
