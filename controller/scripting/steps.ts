/** Counts how often a run was asked whether it is to stop. */
export interface Steps {
  /** Whether it took too many. */
  readonly isOver: boolean;
  /** One more; answers `isOver`. */
  more(): boolean;
}

/** Without a bound when `max` is absent. */
export function steps(max = Number.POSITIVE_INFINITY): Steps {
  let taken = 0;
  return {
    get isOver() {
      return taken > max;
    },
    more: () => (taken += 1) > max,
  };
}
