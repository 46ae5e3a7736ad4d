/** Clocks of a place. A local time is a number of milliseconds as well: the one at which UTC shows it. */
export interface TimeZone {
  /** By how much its clocks are ahead of UTC. */
  offsetMs(atMs: number): number;
  /**
   * The moment at which its clocks show a local time. Of two, where clocks are set back, the one nearer to `nearMs`.
   * Where clocks are set forward over it, the clock that was not set forward yet is meant: 02:30 is 03:30 then.
   */
  momentMs(localMs: number, nearMs: number): number;
}

/** The reason why a text is no time, as the end of a sentence that begins with the text. */
export interface TimeFault {
  readonly reason: string;
  /** The text is not written as the layout says; absent: it is, but means no time. */
  readonly isMisfit?: true;
}

/** Milliseconds since 1970, or why not. */
export type ReadTime = number | TimeFault;

/** Defaults for the parts of a time that a text leaves open. */
export interface TimeContext {
  /** Zone of texts that name none. */
  readonly zone: TimeZone;
  /** Time at which the text was read: a missing year or day is the one nearest to it. */
  readonly nearMs: number;
}

/** Parts of a time that a text has; absent members are not in it. */
export interface TimeFields {
  year?: number;
  month?: number;
  day?: number;
  dayOfYear?: number;
  weekYear?: number;
  week?: number;
  /** 1 is Monday. */
  weekday?: number;
  hour?: number;
  /** 1 to 12, with `isAfternoon`. */
  hour12?: number;
  isAfternoon?: boolean;
  minute?: number;
  /** 60 is the next second. */
  second?: number;
  milliseconds?: number;
  zone?: TimeZone;
}
