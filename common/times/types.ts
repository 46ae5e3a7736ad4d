/** A time zone. A local time is in milliseconds, too: those of the moment at which UTC shows the same date and time. */
export interface TimeZone {
  /** Milliseconds by which the local clocks are ahead of UTC. */
  offsetMs(atMs: number): number;
  /**
   * The moment at which the local clocks show a local time. If they show it twice, because they are set back, the
   * moment nearer to `nearMs`. If they skip it, because they are set forward, the offset before the change applies:
   * 02:30 means 03:30.
   */
  momentMs(localMs: number, nearMs: number): number;
}

/** The reason why a text is no time. It completes a sentence that begins with the text. */
export interface TimeFault {
  readonly reason: string;
  /** True: the text does not match the layout. Absent: it matches, but is no valid time. */
  readonly isMisfit?: true;
}

/** Milliseconds since 1970, or the reason why there is no time. */
export type ReadTime = number | TimeFault;

/** Defaults for the parts that a text omits. */
export interface TimeContext {
  /** Zone of texts without a zone. */
  readonly zone: TimeZone;
  /** Time at which the text was read. A missing year or day is chosen so that the result is nearest to it. */
  readonly nearMs: number;
}

/** Parts of a time that a text contains; the others are absent. */
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
  /** 1 to 12; `isAfternoon` says which half of the day. */
  hour12?: number;
  isAfternoon?: boolean;
  minute?: number;
  /** 60 is the first second of the next minute. */
  second?: number;
  milliseconds?: number;
  zone?: TimeZone;
}
