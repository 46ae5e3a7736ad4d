import { expect, test } from "vitest";
import { allowedMethods } from "./methods.ts";

const allowed = allowedMethods([
  { method: "GET", path: "/job" },
  { method: "POST", path: "/job" },
  { method: "GET", path: "/job/exec/*" },
  { method: "DELETE", path: "/job/*" },
  { method: "PUT", path: "/thing/:name/part" },
  { method: "GET", path: "/" },
]);

test.each([
  ["/job", "GET HEAD OPTIONS POST"],
  ["/job/", "GET HEAD OPTIONS POST"],
  ["/job/a@b", "DELETE OPTIONS"],
  ["/job/exec/a/b", "DELETE GET HEAD OPTIONS"],
  ["/job/exec", "DELETE OPTIONS"],
  ["/thing/a%2Fb/part", "OPTIONS PUT"],
  ["/thing//part", ""],
  ["/thing/a", ""],
  ["/jobs", ""],
  ["/JOB", ""],
  ["/", "GET HEAD OPTIONS"],
])("%s allows %s", (path, methods) => {
  expect(allowed(path).join(" ")).toBe(methods);
});
