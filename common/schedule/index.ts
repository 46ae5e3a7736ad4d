export { parseSchedule, type Schedule } from "./schedule.ts";
export { jitterMs, lastTime, nextTimes } from "./times.ts";
