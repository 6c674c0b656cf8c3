'use strict';
for (const trace of document.querySelectorAll('.trace')) {
  const picture = trace.querySelector('.picture');
  const steps = [...trace.querySelectorAll('.step')], panels = [...trace.querySelectorAll('.panel')];
  let kept = 0;
  const show = at => panels.forEach((panel, index) => panel.hidden = index !== at);
  const keep = at => {
    if (at < 0 || at >= steps.length) return;
    steps[kept].classList.remove('chosen');
    steps[kept = at].classList.add('chosen');
    show(at);
  };
  steps.forEach((step, at) => {
    step.addEventListener('mouseenter', () => show(at));
    step.addEventListener('click', () => keep(at));
  });
  picture.addEventListener('mouseleave', () => show(kept));
  picture.addEventListener('keydown', event => {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!by) return;
    event.preventDefault();
    keep(kept + by);
    steps[kept].scrollIntoView({block: 'nearest'});
  });
  const marked = steps.findIndex(step => step.dataset.step === trace.dataset.marked);
  if (steps.length) keep(marked < 0 ? steps.length - 1 : marked);
  if (marked >= 0) picture.scrollTop = steps[marked].getBBox().y - 120;
}
