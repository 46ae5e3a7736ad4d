import { expect, test } from "vitest";
import { seedsOf } from "./times.ts";

test("every run takes the seeds that found something and a few more", () => {
  expect(seedsOf([45, 51], 2, { times: 1, seed: undefined })).toEqual([45, 51, 1, 2]);
});

test("a soak takes as many times as many, beginning with its own seed", () => {
  expect(seedsOf([45], 2, { times: 3, seed: "100" })).toEqual([45, 100, 101, 102, 103, 104, 105]);
});

test("a seed alone is replayed by itself", () => {
  expect(seedsOf([45], 2, { times: 1, seed: "51" })).toEqual([51]);
});
