// Draws the pictures of the element "charts" (chart.h) with Chart.js. When all are drawn,
// document.body.dataset.charts holds their number.
'use strict';
(() => {
  const specs = JSON.parse(document.getElementById('charts').textContent);
  const figures = [...document.querySelectorAll('figure')];
  const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
  // Okabe and Ito's colours, which people with any kind of colour vision can tell apart; lighter
  // ones on a dark ground. Curves differ in marker and dash, too.
  const themes = {
    light: {
      ink: '#1b1f24', soft: '#5b6470', grid: '#e4e8ed',
      series: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b98300', '#56b4e9', '#5d4a9c', '#000000'],
    },
    dark: {
      ink: '#e6e9ed', soft: '#a0a9b4', grid: '#2c333c',
      series: ['#56b4e9', '#ff8f4a', '#2fc79b', '#e59ac4', '#f0c04a', '#9fd3f5', '#a897e6', '#ffffff'],
    },
  };
  const markers = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star'];
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
  const bandFrom = 30;  // points from which on a band is drawn instead of bars and markers
  const ticksMax = 12;
  let drawn = [];

  function format(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return '–';
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(3);
    return new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 }).format(value);
  }

  function formatTick(value) {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential();
    return new Intl.NumberFormat('en-US', { maximumSignificantDigits: 6 }).format(value);
  }

  // On a logarithmic axis: powers of ten, and some between them where there are few.
  function thinLog(axis) {
    const decades = Math.log10(axis.max / axis.min);
    const shown = decades > 4 ? [1] : decades > 1.5 ? [1, 2, 5] : [1, 2, 3, 5, 7];
    const kept = axis.ticks.filter(({ value }) => {
      const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
      return shown.some((other) => Math.abs(digit - other) < 1e-6);
    });
    if (kept.length > 1) axis.ticks = kept;
  }

  // A long title in several lines, so that no picture cuts it off.
  function linesOf(title) {
    const lines = [''];
    for (const word of title.split(' ')) {
      const line = lines[lines.length - 1];
      if (line !== '' && line.length + word.length > 58) lines.push(word);
      else lines[lines.length - 1] = line === '' ? word : line + ' ' + word;
    }
    return lines;
  }

  // Standard errors and marked lines, which Chart.js does not have.
  const extras = {
    id: 'extras',
    beforeDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales } = chart;
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
      ctx.clip();
      chart.data.datasets.forEach((set, i) => {
        if (set.band && chart.isDatasetVisible(i)) drawBand(ctx, set, scales);
      });
      ctx.restore();
    },
    afterDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales } = chart;
      ctx.save();
      chart.data.datasets.forEach((set, i) => {
        if (!set.errors || set.band || !chart.isDatasetVisible(i)) return;
        drawErrors(ctx, chart.getDatasetMeta(i).data, set, scales.y, area);
      });
      drawMarks(ctx, chart);
      ctx.restore();
    },
  };

  function drawBand(ctx, set, { x, y }) {
    const edge = (sign) => set.data.map((point, i) =>
      [x.getPixelForValue(point.x), y.getPixelForValue(point.y + sign * (set.errors[i] || 0))]);
    const outline = [...edge(1), ...edge(-1).reverse()].filter((at) => at.every(Number.isFinite));
    ctx.globalAlpha = 0.2;
    ctx.fillStyle = set.borderColor;
    ctx.beginPath();
    outline.forEach(([px, py]) => ctx.lineTo(px, py));
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  function drawErrors(ctx, elements, set, scale, area) {
    ctx.strokeStyle = set.errorColor;
    ctx.lineWidth = 1.25;
    ctx.setLineDash([]);
    elements.forEach((element, i) => {
      const error = set.errors[i];
      const value = set.data[i].y === undefined ? set.data[i] : set.data[i].y;
      if (!error || value === null) return;
      const low = scale.getPixelForValue(value - error);
      const bottom = Number.isFinite(low) ? Math.min(low, area.bottom) : area.bottom;
      const top = scale.getPixelForValue(value + error);
      ctx.beginPath();
      for (const end of [top, bottom]) {
        ctx.moveTo(element.x - 4, end);
        ctx.lineTo(element.x + 4, end);
      }
      ctx.moveTo(element.x, top);
      ctx.lineTo(element.x, bottom);
      ctx.stroke();
    });
  }

  // Labels stand in the margin, apart from each other, so that they hide no data.
  function drawMarks(ctx, chart) {
    const { chartArea: area, scales, options } = chart;
    ctx.strokeStyle = ctx.fillStyle = options.markColor;
    ctx.font = '12px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    ctx.lineWidth = 1;
    ctx.setLineDash([5, 4]);
    let free = area.bottom + 30;
    for (const mark of [...options.marks].sort((a, b) => a.y - b.y)) {
      const at = scales.y.getPixelForValue(mark.y);
      if (!(at >= area.top && at <= area.bottom)) continue;
      ctx.beginPath();
      ctx.moveTo(area.left, at);
      ctx.lineTo(area.right, at);
      ctx.stroke();
      const middle = Math.min(at, free - 34);
      ctx.fillText(mark.label, area.right + 6, middle - 7);
      ctx.fillText(format(mark.y), area.right + 6, middle + 8);
      free = middle;
    }
  }

  function pointsOf(spec, series) {
    if (spec.kind !== 'bars' && spec.kind !== 'ranking') {
      return series.x.map((x, i) => ({ x, y: series.y[i] }));
    }
    const values = spec.x.categories.map(() => null);
    series.x.forEach((x, i) => { values[x] = series.y[i]; });
    return values;
  }

  // By category for bars, so that errors stand where their bar stands.
  function errorsOf(spec, series) {
    if (!series.error) return undefined;
    if (spec.kind !== 'bars') return series.error;
    const values = spec.x.categories.map(() => null);
    series.x.forEach((x, i) => { values[x] = series.error[i]; });
    return values;
  }

  // How many earlier curves each curve lies on at half of its points or more, and whether one lies on it.
  function layersOf(spec) {
    const values = spec.series.flatMap(({ y }) => y).filter((y) => y !== null && (!spec.y.log || y > 0));
    const place = (y) => (spec.y.log ? Math.log(y) : y);
    const low = place(Math.min(...values));
    const near = 0.015 * (place(Math.max(...values)) - (spec.y.log ? low : Math.min(low, 0)) || 1);
    const liesOn = (upper, lower) => {
      const under = new Map(lower.x.map((x, i) => [x, lower.y[i]]));
      const shared = upper.x.filter((x, i) => under.has(x) &&
        Math.abs(place(upper.y[i]) - place(under.get(x))) <= near);
      return shared.length * 2 >= upper.x.length;
    };
    return spec.series.map((series, i) => ({
      below: spec.series.slice(0, i).filter((other) => liesOn(series, other)).length,
      covered: spec.series.slice(i + 1).some((other) => liesOn(other, series)),
    }));
  }

  function datasetOf(spec, series, index, layers, theme) {
    const bars = spec.kind === 'bars' || spec.kind === 'ranking';
    const stroke = (!bars && series.stroke) ||
      { color: index, dash: Math.floor(index / theme.series.length) };
    const color = theme.series[stroke.color % theme.series.length];
    const many = series.x.length >= bandFrom;
    const set = {
      label: series.name, data: pointsOf(spec, series), errors: errorsOf(spec, series),
      errorColor: color, borderColor: color, backgroundColor: color, borderWidth: 2,
    };
    if (spec.kind === 'histogram') {
      return { ...set, type: 'line', stepped: 'before', fill: 'origin', pointRadius: 0,
               backgroundColor: color + '66', borderWidth: 1.5, pointHitRadius: 6, stepped: true };
    }
    if (bars) {
      return { ...set, type: 'bar', errorColor: theme.ink, borderWidth: 0, maxBarThickness: 44 };
    }
    // A curve that lies on another is drawn over it, dashed and with larger, hollow markers; the
    // lowest is broad. What agrees shows through.
    const { below, covered } = layers[index];
    const dash = Math.max(stroke.dash, below);
    const hollow = dash > 0;
    return {
      ...set, type: 'line', showLine: spec.kind === 'lines', order: -dash,
      backgroundColor: hollow ? 'transparent' : color, pointBorderWidth: hollow ? 1.5 : 1, band: many && spec.kind === 'lines',
      borderWidth: many ? 1.5 : covered && !hollow ? 3.5 : 2, borderDash: dashes[dash % dashes.length],
      pointStyle: markers[index % markers.length],
      pointRadius: many && spec.kind === 'lines' ? 0 : hollow ? 5 + Math.min(dash, 3) : 4,
      pointHoverRadius: 8, tension: 0,
    };
  }

  // The range of y with its errors and marks, from zero unless that would flatten the picture.
  function rangeOf(spec) {
    let low = Infinity;
    let high = -Infinity;
    for (const series of spec.series) {
      series.y.forEach((y, i) => {
        if (y === null) return;
        const error = (series.error && series.error[i]) || 0;
        low = Math.min(low, spec.y.log && y - error <= 0 ? y : y - error);
        high = Math.max(high, y + error);
      });
    }
    for (const mark of spec.marks) {
      low = Math.min(low, mark.y);
      high = Math.max(high, mark.y);
    }
    if (!Number.isFinite(low)) return {};
    if (spec.y.log) return { min: low / 1.3, max: high * 1.3 };
    const fromZero = low >= 0 && (low < 0.6 * high || spec.kind === 'bars' || spec.kind === 'histogram');
    const room = 0.05 * (high - low || Math.abs(high) || 1);
    return fromZero ? { min: 0, suggestedMax: high + room } : { suggestedMin: low - room, suggestedMax: high + room };
  }

  function axisOf(axis, theme, more) {
    return {
      type: axis.log ? 'logarithmic' : 'linear',
      title: { display: axis.title !== '', text: linesOf(axis.title), color: theme.ink, font: { size: 13 } },
      grid: { color: theme.grid, borderColor: theme.soft },
      ...(axis.log ? { afterBuildTicks: thinLog } : {}),
      ...more,
      ticks: {
        color: theme.soft, maxRotation: 45, autoSkipPadding: 10, includeBounds: false,
        callback: formatTick, ...(more && more.ticks),
      },
    };
  }

  function scalesOf(spec, theme) {
    if (spec.kind === 'ranking') {
      return {
        x: axisOf(spec.y, theme, { stacked: true, min: 0 }),
        y: { type: 'category', labels: spec.x.categories, stacked: true,
             grid: { display: false }, ticks: { color: theme.ink, autoSkip: false } },
      };
    }
    // The title stands above the picture, in one line, where a low picture does not cut it off.
    const y = axisOf({ ...spec.y, title: '' }, theme, rangeOf(spec));
    if (!spec.x.categories) return { x: axisOf(spec.x, theme, boundsOf(spec)), y };
    const x = axisOf(spec.x, theme);
    return {
      x: { ...x, type: spec.kind === 'bars' ? 'category' : 'linear', labels: spec.x.categories,
           grid: { display: spec.kind !== 'bars', color: theme.grid },
           ...(spec.kind === 'bars' ? {} : { min: -0.5, max: spec.x.categories.length - 0.5 }),
           ...(spec.kind === 'bars' ? {} : {
             afterBuildTicks: (axis) => { axis.ticks = spec.x.categories.map((_, value) => ({ value })); },
           }),
           ticks: { color: theme.ink, maxRotation: 45, callback: (value) => spec.x.categories[value] || '' } },
      y,
    };
  }

  // x ends where the data end, with some room for markers; few different values are the ticks.
  function boundsOf(spec) {
    const values = [...new Set(spec.series.flatMap((series) => series.x))].sort((a, b) => a - b);
    const low = values[0];
    const high = values[values.length - 1];
    if (spec.kind === 'histogram' || values.length >= bandFrom) return { min: low, max: high };
    const room = 0.03 * (high - low || Math.abs(high) || 1);
    const bounds = spec.x.log ? { min: low / 1.1, max: high * 1.1 } : { min: low - room, max: high + room };
    if (!spec.x.swept || values.length > ticksMax) return bounds;
    return {
      ...bounds, ticks: { callback: formatTick },
      afterBuildTicks: (axis) => { axis.ticks = apart(values, spec.x.log).map((value) => ({ value })); },
    };
  }

  // Those far enough from the one before that their labels do not touch.
  function apart(values, log) {
    const place = (value) => (log ? Math.log(value) : value);
    const least = 0.04 * (place(values[values.length - 1]) - place(values[0]));
    const kept = [];
    for (const value of values) {
      if (kept.length === 0 || place(value) - place(kept[kept.length - 1]) >= least) kept.push(value);
    }
    return kept;
  }

  function tooltipOf(spec) {
    const x = (item) => (spec.x.categories ? spec.x.categories[item.parsed.x] : format(item.parsed.x));
    const value = (item) => {
      const error = item.dataset.errors && item.dataset.errors[item.dataIndex];
      const y = spec.kind === 'ranking' ? item.parsed.x : item.parsed.y;
      return format(y) + (error ? ' ± ' + format(error) : '');
    };
    const callbacks = {
      title: (items) => (spec.kind === 'ranking' ? items[0].label : (spec.x.title || '') + ': ' + x(items[0])),
      label: (item) => (item.dataset.label ? item.dataset.label + ': ' : '') + value(item),
    };
    return { callbacks, usePointStyle: true };
  }

  function optionsOf(spec, theme) {
    return {
      animation: false, responsive: true, maintainAspectRatio: false, locale: 'en-US',
      indexAxis: spec.kind === 'ranking' ? 'y' : 'x', marks: spec.marks, markColor: theme.ink,
      layout: { padding: { right: spec.marks.length > 0 ? 56 : 6 } },
      interaction: { mode: 'nearest', intersect: false, axis: spec.kind === 'ranking' ? 'y' : 'xy' },
      scales: scalesOf(spec, theme),
      plugins: {
        legend: {
          display: spec.series.length > 1, position: 'bottom',
          title: { display: spec.by !== '', text: 'by ' + spec.by, color: theme.soft },
          labels: {
            color: theme.ink, usePointStyle: spec.kind === 'lines' || spec.kind === 'points', boxHeight: 7,
            sort: (a, b) => a.datasetIndex - b.datasetIndex,
          },
        },
        title: {
          display: spec.kind !== 'ranking' && spec.y.title !== '', text: linesOf(spec.y.title), align: 'start',
          color: theme.ink, font: { size: 13, weight: 'normal' }, padding: { top: 0, bottom: 8 },
        },
        tooltip: tooltipOf(spec),
      },
    };
  }

  function draw(theme) {
    drawn.forEach((chart) => chart.destroy());
    drawn = specs.map((spec, i) => new Chart(figures[i].querySelector('canvas'), {
      type: spec.kind === 'bars' || spec.kind === 'ranking' ? 'bar' : 'line',
      data: {
        labels: spec.x.categories,
        datasets: spec.series.map((series, k) => datasetOf(spec, series, k, layersOf(spec), theme)),
      },
      options: optionsOf(spec, theme),
      plugins: [extras],
    }));
  }

  // The same numbers as text, made when somebody asks for them.
  function tableOf(spec) {
    const wrapper = document.createElement('div');
    wrapper.className = 'table';
    const table = wrapper.appendChild(document.createElement('table'));
    const addRow = (tag, texts) => {
      const row = document.createElement('tr');
      texts.forEach((text) => { row.appendChild(document.createElement(tag)).textContent = text; });
      return row;
    };
    const named = spec.series.some((series) => series.name !== '');
    const head = [...(named ? [spec.by || 'Series'] : []), spec.x.title || 'Name', spec.y.title || 'Value', '±'];
    table.appendChild(document.createElement('thead')).appendChild(addRow('th', head));
    const body = table.appendChild(document.createElement('tbody'));
    for (const series of spec.series) {
      series.x.forEach((x, i) => body.appendChild(addRow('td', [
        ...(named ? [series.name] : []), spec.x.categories ? spec.x.categories[x] : format(x),
        format(series.y[i]), series.error ? format(series.error[i]) : '–'])));
    }
    return wrapper;
  }

  figures.forEach((figure, i) => {
    const details = figure.querySelector('details');
    details.addEventListener('toggle', () => {
      if (details.open && details.children.length === 1) details.appendChild(tableOf(specs[i]));
    });
  });

  const drawForScreen = () => draw(prefersDark.matches ? themes.dark : themes.light);
  prefersDark.addEventListener('change', drawForScreen);
  window.addEventListener('beforeprint', () => draw(themes.light));
  window.addEventListener('afterprint', drawForScreen);
  drawForScreen();
  document.body.dataset.charts = String(drawn.length);
})();
