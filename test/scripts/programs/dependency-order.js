/* The order in which services are started: after what they need. A circle is told with all who are in it. */
var request = JSON.parse(decodeURIComponent(INPUT));
var DONE = 2;
var UNDER_WAY = 1;
var state = {};
var order = [];
var circles = [];

function visit(name, way) {
  if (state[name] === DONE) return;
  if (state[name] === UNDER_WAY) {
    circles.push(way.slice(_.indexOf(way, name)).concat(name).join(" > "));
    return;
  }
  state[name] = UNDER_WAY;
  _.each((request.needs[name] || []).slice().sort(), function (needed) {
    visit(needed, way.concat(name));
  });
  state[name] = DONE;
  order.push(name);
}

_.each(_.keys(request.needs).sort(), function (name) {
  visit(name, []);
});

var waves = {};
_.each(order, function (name) {
  var before = _.map(request.needs[name] || [], function (needed) {
    return waves[needed] || 0;
  });
  waves[name] = before.length ? 1 + _.max(before) : 1;
});
if (circles.length > 0) throw new Error("circles: " + circles.join("; "));
appcontext.rawset("start order", order.join(), 60);
OUTPUT = _.map(
  _.groupBy(order, function (name) {
    return waves[name];
  }),
  function (names) {
    return names.sort();
  },
);
