/** A cached value on which a result is based. */
export interface Evidence {
  /** False once the cache would read the value again. A result based on it is then out of date. */
  isCurrent(nowMs: number): boolean;
}

/** Collects what a result is based on, while the result is made. */
export type EvidenceList = Evidence[];
