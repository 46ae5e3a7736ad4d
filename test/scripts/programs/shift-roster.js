/* Who is on call: people take weeks in turn, leave those out who are away, and nobody has two weeks running. */
var request = JSON.parse(decodeURIComponent(INPUT));
var WEEK = 7 * 24 * 3600 * 1000;
var CLASS = "/matrix/roster/week";

function day(ms) {
  return new Date(ms).toISOString().substring(0, 10);
}

function isAway(person, from) {
  return _.any(request.away[person] || [], function (date) {
    var at = Date.parse(date + "T00:00:00Z");
    return at >= from && at < from + WEEK;
  });
}

var load = {};
_.each(request.people, function (person) {
  load[person] = 0;
});
var last = null;
var from = Date.parse(request.from + "T00:00:00Z");

for (var week = 0; week < request.weeks; week++, from += WEEK) {
  var free = _.reject(request.people, function (person) {
    return person === last || isAway(person, from);
  });
  var chosen = _.min(free, function (person) {
    return load[person] * 100 + _.indexOf(request.people, person);
  });
  if (free.length === 0) chosen = null;
  odb.mql("INSERT INTO " + CLASS + " begins = ?, person = ?", day(from), chosen || "nobody");
  if (chosen) load[chosen] += 1;
  else log.error("nobody is free in the week of", day(from));
  last = chosen;
}
OUTPUT = load;
