import { Histogram, Registry, type Metric } from "prom-client";
import { expect, test } from "vitest";
import { CallFigures } from "./call-figures.ts";

const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];

test("durations are told as prom-client's own histogram tells them", async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const [name, help] = ["seconds", "Durations."];
  const histogram = new Histogram({
    name,
    help,
    labelNames: ["method", "route"],
    buckets: BUCKETS,
    registers: [theirs],
  });
  const figures = new CallFigures();
  const calls = [0, 0.002, 0.0021, 0.3, 0.3, 119, 121, Number.MIN_VALUE].flatMap((seconds) => [
    { method: "GET", route: "/a", seconds },
    { method: "POST", route: '/"b"', seconds: seconds / 2 },
  ]);
  for (const { method, route, seconds } of calls) {
    histogram.observe({ method, route }, seconds);
    figures.of(method, route).add("ok", seconds);
  }
  const values = figures.called().flatMap((route) => route.durations(name));
  const told = { name, help, type: "histogram", get: () => Promise.resolve({ name, help, type: "histogram", values }) };
  ours.registerMetric(told as unknown as Metric);
  expect(await ours.metrics()).toBe(await theirs.metrics());
});

test("a route that was never called has no figures", () => {
  const figures = new CallFigures();
  figures.of("GET", "/a");
  figures.of("GET", "/b").add("denied", 1);
  expect(figures.called().map(({ route, codes }) => [route, ...codes])).toEqual([["/b", ["denied", 1]]]);
});
