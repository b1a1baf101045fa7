/* SPDX-License-Identifier: BSD-3-Clause */
/* Before the search's own worker: what a page is found by are the words of a question that
 * tell pages apart. The search takes each word for the beginning of one, so "in" is "installing". */
(() => {
	const common = new Set((
		"a about after all also always an and any are as at be been but by can could do does each " +
		"for from get gets had has have how i if in into is it its like may me must my need no not " +
		"of on or other our out should so some than that the their them then there these they this " +
		"to too under use used uses using want was we what when where which while who why will with " +
		"without would you your pmi2x slurm").split(" "));
	const listen = self.addEventListener.bind(self);
	const QUERY = 2;

	function shortened(question) {
		const words = question.split(/\s+/).filter(word => !common.has(word.toLowerCase()));
		return words.length ? words.join(" ") : question;
	}

	self.addEventListener = (type, handle) => listen(type, event => handle(
		event.data && event.data.type === QUERY ?
			{data: {...event.data, data: shortened(event.data.data)}} : event));
})();
