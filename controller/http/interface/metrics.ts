import { collectDefaultMetrics, Counter, Gauge, Registry, type Metric } from "prom-client";
import type { Admission } from "../calls/admission.ts";
import { CallFigures } from "./call-figures.ts";

/** A figure that an area provides. It is read at every call of `/metrics`. */
export type Level = {
  readonly name: string;
  readonly help: string;
} & ({ readonly value: () => number } | { readonly byTenant: () => readonly (readonly [string, number])[] });

/** Counters of this controller's HTTP interface, and figures of the other parts, for `/metrics`. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly calls = new CallFigures();

  constructor(admission: Admission, levels: readonly Level[]) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    const { calls } = this;
    new Counter({
      name: "odp_http_calls_total",
      help: "Calls by route and outcome.",
      labelNames: ["method", "route", "code"],
      registers,
      collect() {
        this.reset();
        for (const { method, route, codes } of calls.called())
          for (const [code, count] of codes) this.inc({ method, route, code }, count);
      },
    });
    this.#registry.registerMetric(durationsOf(calls));
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

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

const DURATIONS = "odp_http_call_seconds";

/** A histogram that is read only at a call of `/metrics`. `prom-client` has none: its own takes each value by labels. */
function durationsOf(calls: CallFigures): Metric {
  const histogram = {
    name: DURATIONS,
    help: "Time from the head of a request to the end of its answer.",
    type: "histogram",
    get: () => Promise.resolve({ ...histogram, values: calls.called().flatMap((route) => route.durations(DURATIONS)) }),
  };
  return histogram as unknown as Metric;
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
