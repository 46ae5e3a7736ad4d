/** Counts how often a run was asked if it has to stop. */
export interface Steps {
  /** True if the run took too many steps. */
  readonly isOver: boolean;
  /** Counts one more step; returns `isOver`. */
  more(): boolean;
}

/** Without a bound if `max` is absent. */
export function steps(max = Number.POSITIVE_INFINITY): Steps {
  let taken = 0;
  return {
    get isOver() {
      return taken > max;
    },
    more: () => (taken += 1) > max,
  };
}
