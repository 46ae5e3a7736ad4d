/** Upper bounds of the buckets for durations, in seconds. */
const BUCKETS_S = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120] as const;

/** Calls of one route that have ended. */
export class RouteFigures {
  readonly method: string;
  /** The pattern of the path, not the path itself: there are few patterns. */
  readonly route: string;
  /** Calls by their outcome: `ok` or the code of the failure. */
  readonly codes = new Map<string, number>();
  /** Calls by bucket; the last number counts those beyond all bounds. */
  readonly #buckets: number[] = new Array<number>(BUCKETS_S.length + 1).fill(0);
  #sumS = 0;

  constructor(method: string, route: string) {
    this.method = method;
    this.route = route;
  }

  add(code: string, seconds: number): void {
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
    let at = 0;
    while (at < BUCKETS_S.length && seconds > (BUCKETS_S[at] ?? 0)) at++;
    this.#buckets[at] = (this.#buckets[at] ?? 0) + 1;
    this.#sumS += seconds;
  }

  /** Values of a histogram as Prometheus reads them: each bucket contains those below it. */
  durations(name: string): readonly Sample[] {
    const labels = { method: this.method, route: this.route };
    let count = 0;
    const buckets = this.#buckets.map((calls, at) => {
      count += calls;
      return { metricName: `${name}_bucket`, labels: { le: BUCKETS_S[at] ?? "+Inf", ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sumS },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** One value of a metric, as `prom-client` prints it. */
interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** Figures of all routes. Every call adds to them, so a call looks up no labels: its route has them. */
export class CallFigures {
  readonly #routes = new Map<string, RouteFigures>();

  of(method: string, route: string): RouteFigures {
    const key = `${method} ${route}`;
    let figures = this.#routes.get(key);
    if (figures === undefined) this.#routes.set(key, (figures = new RouteFigures(method, route)));
    return figures;
  }

  /** Routes that were called. */
  called(): readonly RouteFigures[] {
    return [...this.#routes.values()].filter(({ codes }) => codes.size > 0);
  }
}
