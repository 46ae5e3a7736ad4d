import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Admission } from "../calls/admission.ts";

export interface FinishedCall {
  readonly method: string;
  /** The pattern of the path, not the path itself: there are few patterns. */
  readonly route: string;
  readonly code: string;
  readonly seconds: number;
}

/** A figure that an area provides. It is read at every call of `/metrics`. */
export type Level = {
  readonly name: string;
  readonly help: string;
} & ({ readonly value: () => number } | { readonly byTenant: () => readonly (readonly [string, number])[] });

/** Counters of this controller's HTTP interface, and figures of the other parts, for `/metrics`. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #calls: Counter<"method" | "route" | "code">;
  readonly #durations: Histogram<"method" | "route">;

  constructor(admission: Admission, levels: readonly Level[]) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#calls = new Counter({
      name: "odp_http_calls_total",
      help: "Calls by route and outcome.",
      labelNames: ["method", "route", "code"],
      registers,
    });
    this.#durations = new Histogram({
      name: "odp_http_call_seconds",
      help: "Time from the head of a request to the end of its answer.",
      labelNames: ["method", "route"],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120],
      registers,
    });
    new Gauge({
      name: "odp_http_calls_in_flight",
      help: "Admitted calls by tenant.",
      labelNames: ["tenant"],
      registers,
      collect() {
        this.reset();
        for (const [tenant, count] of admission.inFlight()) this.set({ tenant }, count);
      },
    });
    for (const level of levels) registerLevel(level, this.#registry);
  }

  observe(call: FinishedCall): void {
    const { method, route, code } = call;
    this.#calls.inc({ method, route, code });
    this.#durations.observe({ method, route }, call.seconds);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

function registerLevel(level: Level, registry: Registry): void {
  const { name, help } = level;
  const registers = [registry];
  if ("value" in level) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(level.value());
      },
    });
    return;
  }
  new Gauge({
    name,
    help,
    labelNames: ["tenant"],
    registers,
    collect() {
      this.reset();
      for (const [tenant, count] of level.byTenant()) this.set({ tenant }, count);
    },
  });
}
