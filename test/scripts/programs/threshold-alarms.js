/* Alarms with hysteresis: one opens above a threshold, and closes only when the value was below it often enough. */
var samples = JSON.parse(decodeURIComponent(INPUT));
var RULES = { cpu: { above: 90, calm: 2 }, disk: { above: 80, calm: 1 } };
var CLASS = "/matrix/alarm/open";

function load(key) {
  var rows = odb.mql("SELECT state, calm, worst FROM " + CLASS + " WHERE name = ?", key).data;
  return rows.length ? rows[0] : { state: "closed", calm: 0, worst: 0 };
}

function store(key, alarm) {
  odb.mql(
    "INSERT INTO " + CLASS + " name = ?, state = ?, calm = ?, worst = ?",
    key,
    alarm.state,
    alarm.calm,
    alarm.worst,
  );
}

var told = [];
samples.forEach(function (sample) {
  var rule = RULES[sample.metric];
  if (!rule) {
    log.warn("no rule for", sample.metric);
    return;
  }
  var key = sample.host + " " + sample.metric;
  var alarm = load(key);
  if (sample.value > rule.above) {
    if (alarm.state === "closed") told.push("open " + key);
    alarm = { state: "open", calm: 0, worst: Math.max(alarm.worst || 0, sample.value) };
  } else if (alarm.state === "open") {
    alarm.calm += 1;
    if (alarm.calm >= rule.calm) {
      told.push("close " + key + " after " + alarm.worst);
      alarm = { state: "closed", calm: 0, worst: 0 };
    }
  } else return;
  store(key, alarm);
});
OUTPUT = told;
