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

/** Why a text is no time, as the end of a sentence that begins with the text. */
export interface TimeFault {
  readonly reason: string;
  /** The text is not written as the layout says; absent: it is, but means no time. */
  readonly isMisfit?: true;
}

/** Milliseconds since 1970, or why not. */
export type ReadTime = number | TimeFault;

/** What a text leaves open is filled by these. */
export interface TimeContext {
  /** Of texts without a zone. */
  readonly zone: TimeZone;
  /** When the text was read: the year, and the day, that a text does not have are those nearest to it. */
  readonly nearMs: number;
}

/** What a text says of a time; absent members are not in it. */
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
